// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {CollateralBridge} from "./shared/CollateralBridge.sol";
import {NegRiskAdapter} from "./NegRiskAdapter.sol";

/// For markets that exclude each other, whose positions are over wrapped collateral.
contract NegRiskCollateralAdapter is CollateralBridge {
    using SafeERC20 for IERC20;

    NegRiskAdapter private constant ADAPTER = NegRiskAdapter(Addresses.NEG_RISK_ADAPTER);

    function _collateral() internal pure override returns (address) {
        return Addresses.WRAPPED_COLLATERAL;
    }

    function _split(bytes32 conditionId, uint256 amount) internal override {
        IERC20(Addresses.USDCE).forceApprove(address(ADAPTER), amount);
        ADAPTER.splitPosition(conditionId, amount);
    }

    function _merge(bytes32 conditionId, uint256 amount) internal override {
        TOKENS.setApprovalForAll(address(ADAPTER), true);
        ADAPTER.mergePositions(conditionId, amount);
    }

    function _redeem(bytes32 conditionId, uint256[] memory amounts) internal override {
        TOKENS.setApprovalForAll(address(ADAPTER), true);
        ADAPTER.redeemPositions(conditionId, amounts);
    }
}
