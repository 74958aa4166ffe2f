// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {Addresses} from "./shared/Addresses.sol";
import {BinarySets} from "./shared/BinarySets.sol";
import {CollateralBridge} from "./shared/CollateralBridge.sol";
import {ConditionalTokens} from "./ConditionalTokens.sol";
import {PositionManager} from "./PositionManager.sol";
import {PositionRouter} from "./PositionRouter.sol";

/// Redeems for owners who have approved it, and pays them.
contract AutoRedeemer is ERC1155Holder {
    using SafeERC20 for IERC20;

    ConditionalTokens private constant TOKENS = ConditionalTokens(Addresses.CONDITIONAL_TOKENS);
    PositionManager private constant MANAGER = PositionManager(Addresses.POSITION_MANAGER);
    IERC20 private constant DOLLAR = IERC20(Addresses.PUSD);

    error NotRedeemer(address caller);
    error NothingHeld(address owner);

    event Redeemed(address indexed owner, bytes32 indexed conditionId, uint256 payout);

    modifier onlyRedeemer() {
        require(msg.sender == Addresses.REDEEMER, NotRedeemer(msg.sender));
        _;
    }

    /// Of protocol v1; the adapter knows the collateral.
    function redeemTokens(address owner, bytes32 conditionId, bool isNegRisk) external onlyRedeemer {
        address collateral = isNegRisk ? Addresses.WRAPPED_COLLATERAL : Addresses.USDCE;
        address adapter = isNegRisk ? Addresses.NEG_RISK_COLLATERAL_ADAPTER : Addresses.COLLATERAL_ADAPTER;
        (uint256[] memory ids, uint256[] memory amounts) = BinarySets.positions(collateral, conditionId, 0);
        for (uint256 i = 0; i < 2; i++) {
            amounts[i] = TOKENS.balanceOf(owner, ids[i]);
        }
        require(amounts[0] + amounts[1] > 0, NothingHeld(owner));
        TOKENS.safeBatchTransferFrom(owner, address(this), ids, amounts, "");
        TOKENS.setApprovalForAll(adapter, true);
        CollateralBridge(adapter).redeemPositions(address(DOLLAR), 0, conditionId, BinarySets.both());
        _pay(owner, conditionId);
    }

    /// Of protocol v2.
    function redeemPositions(address owner, bytes31 conditionId) external onlyRedeemer {
        uint256 held = 0;
        MANAGER.setApprovalForAll(Addresses.ROUTER, true);
        for (uint256 i = 0; i < 2; i++) {
            uint256 id = uint256(bytes32(conditionId)) + i;
            uint256 amount = MANAGER.balanceOf(owner, id);
            if (amount == 0) continue;
            held += amount;
            MANAGER.unsafeTransferFrom(owner, address(this), id, amount);
            PositionRouter(Addresses.ROUTER).redeem(conditionId, i, amount);
        }
        require(held > 0, NothingHeld(owner));
        _pay(owner, conditionId);
    }

    function _pay(address owner, bytes32 conditionId) private {
        uint256 payout = DOLLAR.balanceOf(address(this));
        if (payout > 0) DOLLAR.safeTransfer(owner, payout);
        emit Redeemed(owner, conditionId, payout);
    }
}
