// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {Addresses} from "./Addresses.sol";
import {BinarySets} from "./BinarySets.sol";
import {ConditionalTokens} from "../ConditionalTokens.sol";
import {PolymarketUsd} from "../PolymarketUsd.sol";

/// Splits, merges and redeems for the venue's dollar, with the functions of the conditional tokens. Positions are over
/// another collateral, so the dollar is unwrapped on the way in and wrapped on the way out. Parent and partition are
/// those of a binary condition whatever the caller says.
abstract contract CollateralBridge is ERC1155Holder {
    using SafeERC20 for IERC20;

    ConditionalTokens internal constant TOKENS = ConditionalTokens(Addresses.CONDITIONAL_TOKENS);
    PolymarketUsd internal constant DOLLAR = PolymarketUsd(Addresses.PUSD);

    function splitPosition(address, bytes32, bytes32 conditionId, uint256[] calldata, uint256 amount)
        external
    {
        IERC20(address(DOLLAR)).safeTransferFrom(msg.sender, address(this), amount);
        DOLLAR.unwrap(Addresses.USDCE, address(this), amount);
        _split(conditionId, amount);
        (uint256[] memory ids, uint256[] memory amounts) = BinarySets.positions(_collateral(), conditionId, amount);
        TOKENS.safeBatchTransferFrom(address(this), msg.sender, ids, amounts, "");
    }

    function mergePositions(address, bytes32, bytes32 conditionId, uint256[] calldata, uint256 amount)
        external
    {
        (uint256[] memory ids, uint256[] memory amounts) = BinarySets.positions(_collateral(), conditionId, amount);
        TOKENS.safeBatchTransferFrom(msg.sender, address(this), ids, amounts, "");
        _merge(conditionId, amount);
        _wrapAll(msg.sender);
    }

    function redeemPositions(address, bytes32, bytes32 conditionId, uint256[] calldata) external {
        (uint256[] memory ids, uint256[] memory amounts) = BinarySets.positions(_collateral(), conditionId, 0);
        amounts[0] = TOKENS.balanceOf(msg.sender, ids[0]);
        amounts[1] = TOKENS.balanceOf(msg.sender, ids[1]);
        TOKENS.safeBatchTransferFrom(msg.sender, address(this), ids, amounts, "");
        _redeem(conditionId, amounts);
        _wrapAll(msg.sender);
    }

    function _collateral() internal pure virtual returns (address);

    /// Of dollars that this contract holds.
    function _split(bytes32 conditionId, uint256 amount) internal virtual;

    function _merge(bytes32 conditionId, uint256 amount) internal virtual;

    function _redeem(bytes32 conditionId, uint256[] memory amounts) internal virtual;

    function _wrapAll(address to) private {
        uint256 amount = IERC20(Addresses.USDCE).balanceOf(address(this));
        IERC20(Addresses.USDCE).forceApprove(address(DOLLAR), amount);
        DOLLAR.wrap(Addresses.USDCE, to, amount);
    }
}
